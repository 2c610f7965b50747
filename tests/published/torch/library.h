// In place of PyTorch's header, for published host code that only checks conditions with it: -I
// tests/published.
#pragma once

#include <stdexcept>

#define TORCH_CHECK(condition, ...) \
  ((condition) ? void() : throw std::runtime_error("a TORCH_CHECK of the published host code failed"))
