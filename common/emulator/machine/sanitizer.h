// EMULATOR_ASAN: this build runs under AddressSanitizer, which has to be told of fibers and of stacks.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif
