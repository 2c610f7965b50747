// Thrust's engines and distributions of random numbers, for host code.
#pragma once

#include <random>

namespace thrust {
namespace random {
using std::minstd_rand;
using std::minstd_rand0;
using std::ranlux24;
using std::ranlux48;
using default_random_engine = minstd_rand;
template <typename T = float>
using uniform_real_distribution = std::uniform_real_distribution<T>;
template <typename T = int>
using uniform_int_distribution = std::uniform_int_distribution<T>;
template <typename T = float>
using normal_distribution = std::normal_distribution<T>;
}  // namespace random
using namespace random;  // NOLINT(google-global-names-in-headers): as Thrust has it
}  // namespace thrust
