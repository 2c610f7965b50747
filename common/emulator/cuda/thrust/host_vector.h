// Thrust's containers, which example programs keep their matrices in. Few of its algorithms are here.
#pragma once

#include <vector>

namespace thrust {

template <typename T>
using host_vector = std::vector<T>;

}  // namespace thrust
