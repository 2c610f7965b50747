// Host and device have the same C++ library here.
#pragma once

#include <type_traits>

namespace cuda::std {
using namespace ::std;
}
