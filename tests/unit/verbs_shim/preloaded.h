// The preload library has to be there from the start, so a test program starts itself once more
// with it, before main().
#pragma once

// True when this process has been started that way.
bool is_preloaded();

// Takes this process, or a forked child, for one that has: with whatever environment it goes on.
void mark_preloaded();

// Starts this program again with the library as built; ends the process when that fails.
[[noreturn]] void start_preloaded(char** argv);
