// What a module says, from a program for this processor: page_NN KERNEL SHAPE SEED COMPLETION, or page_NN
// alone for what it holds.
#include <cstdio>

#include "run.h"

int main(int argc, char** argv) {
  if (argc != 1 && argc != 5) {
    std::fputs("error: name a kernel, a shape, a seed and a completion, or nothing\n", stderr);
    return 2;
  }
  std::puts((argc == 1 ? page::describe() : page::run({argv[1], argv[2], argv[3], argv[4]})).c_str());
  return 0;
}
