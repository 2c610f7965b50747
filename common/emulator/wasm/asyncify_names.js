// For Emscripten's linker, which looks for these in JavaScript: Binaryen's pass Asyncify puts its own code in place of every call.
mergeInto(LibraryManager.library, {
  start_unwind: function() {},
  stop_unwind: function() {},
  start_rewind: function() {},
  stop_rewind: function() {},
});
