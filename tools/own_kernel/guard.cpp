// Bytes that nobody owns, of each thread's variables as the __shared__ ones are: linked before a kernel's
// object and after it.
extern "C" {
thread_local constinit char GUARD[4096] __attribute__((aligned(16))) = {};
}
