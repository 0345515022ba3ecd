#include "tests/bench/arguments.h"

#include <CLI/CLI.hpp>

namespace rocemu::bench {

Arguments::Arguments(const char* about) : app_(std::make_unique<CLI::App>(about)) {}

Arguments::~Arguments() = default;

void Arguments::flag(const char* name, bool& value, const char* help) {
  app_->add_flag(name, value, help);
}

void Arguments::text(const char* name, std::string& value, const char* help) {
  app_->add_option(name, value, help);
}

void Arguments::index(const char* name, int& value, const char* help) {
  app_->add_option(name, value, help)->check(CLI::NonNegativeNumber);
}

void Arguments::count(const char* name, uint32_t& value, const char* help, uint32_t most) {
  app_->add_option(name, value, help)->check(CLI::Range(uint32_t{1}, most));
}

void Arguments::count(const char* name, uint64_t& value, const char* help, uint64_t most) {
  app_->add_option(name, value, help)->check(CLI::Range(uint64_t{1}, most));
}

void Arguments::seconds(double& value) {
  app_->add_option("--seconds", value, "How long")->check(CLI::PositiveNumber);
}

std::optional<int> Arguments::parse(int argc, const char* const* argv) try {
  app_->parse(argc, argv);
  return std::nullopt;
} catch (const CLI::ParseError& error) {
  return app_->exit(error);
}

}  // namespace rocemu::bench
