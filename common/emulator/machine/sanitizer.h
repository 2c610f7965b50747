// EMULATOR_ASAN: this build runs under AddressSanitizer, which has to be told of fibers and of stacks.
// EMULATOR_INSTRUMENTED: this source is compiled with -fsanitize=thread, and the hooks of emulator/instrument
// look at its plain loads and stores.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define EMULATOR_INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EMULATOR_INSTRUMENTED 1
#endif
#endif

// For functions of headers that check an access themselves before they make it.
#ifdef EMULATOR_INSTRUMENTED
#define EMULATOR_NOT_INSTRUMENTED __attribute__((no_sanitize("thread"), noinline))
#else
#define EMULATOR_NOT_INSTRUMENTED
#endif
