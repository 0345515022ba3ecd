// Runs a target over stored inputs without a fuzzer.
//
//   fuzz_TARGET FILE_OR_FOLDER...
//
// Exit code 1 when there is no input. A broken invariant aborts, after the name of its input.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes);

namespace {

namespace fs = std::filesystem;

void run(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  // Of exactly the input's size, so that AddressSanitizer sees every byte read behind it.
  const auto bytes = std::make_unique<uint8_t[]>(text.size());
  std::copy(text.begin(), text.end(), bytes.get());
  LLVMFuzzerTestOneInput(bytes.get(), text.size());
}

std::vector<fs::path> inputs(int argc, char** argv) {
  std::vector<fs::path> paths;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      paths.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(argv[i]))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<fs::path> paths = inputs(argc, argv);
  for (const fs::path& path : paths) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    run(path);
  }
  std::printf("%zu inputs\n", paths.size());
  return paths.empty() ? 1 : 0;
}
