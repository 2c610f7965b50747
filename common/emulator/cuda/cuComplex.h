// Complex numbers as pairs.
#pragma once

#include "cuda_runtime.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

inline float cuCrealf(cuFloatComplex x) {
  return x.x;
}
inline float cuCimagf(cuFloatComplex x) {
  return x.y;
}
inline double cuCreal(cuDoubleComplex x) {
  return x.x;
}
inline double cuCimag(cuDoubleComplex x) {
  return x.y;
}
inline cuFloatComplex make_cuFloatComplex(float real, float imaginary) {
  return {real, imaginary};
}
inline cuDoubleComplex make_cuDoubleComplex(double real, double imaginary) {
  return {real, imaginary};
}
