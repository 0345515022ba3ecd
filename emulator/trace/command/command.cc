#include "emulator/trace/command/command.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "emulator/cli/options.h"
#include "emulator/cli/process/exit_codes.h"
#include "emulator/trace/command/show.h"
#include "emulator/trace/command/start_stop.h"

namespace rocemu::trace {
namespace {

constexpr char kUsageText[] =
    R"(Traces a NIC that is up, and shows what became of each request and each packet

Usage: rocemu trace start [--device NAME]... [--qp QPN]... [--program NAME|PID]... [--limit-mb N] [--name NAME] FILE
       rocemu trace stop [--name NAME]
       rocemu trace show FILE [--as FORMAT] [--device NAME] [--qp QPN] [--program NAME|PID] [--out FILE]
       rocemu trace why FILE [--device NAME] [--qp QPN] [--program NAME|PID]

  --device NAME   the QPs of this device alone: both ends of a connection often have the same number
  --qp QPN        these QPs alone
  --program NAME  the QPs of this program alone, or of the process with this number
                  start takes each of these several times, for several of them
  --limit-mb N    start: the file gets no more than so many megabytes (1074)
  --name NAME     start, stop: the NIC's name (default)
  --socket PATH   start, stop: the NIC's nic.sock, instead of its name
  --as FORMAT     show: text: a line for each event (default); ladder: a page for a browser, with the two
                  ends as lines and packets as arrows; perfetto: for ui.perfetto.dev and Chrome; pcapng:
                  for Wireshark, with what the NIC knows as comments
  --out FILE      show: write to this file (to standard output)

start writes FILE anew; a new one is for its owner's eyes alone. A NIC has one trace at a time; one of --trace or --trace-on-error is ended by stop as well. why tells in
sentences where the time of a QP went, and what to change; without --qp, of all of them. docs/seeing.md and
docs/pictures.md have more.

Examples:
  rocemu trace start --program ib_write_bw /tmp/bw.trace
  rocemu trace stop
  rocemu run --trace lost.trace --impair loss=1% -- ./my_test
  rocemu trace show lost.trace | grep timeout
  rocemu trace show lost.trace --as ladder --out lost.html
  rocemu trace why lost.trace --device rocemu0 --qp 0x11
)";

struct Subcommand {
  const char* name;
  int (*run)(std::span<const std::string> words);
};
constexpr Subcommand kSubcommands[] = {
    {"start", start}, {"stop", stop}, {"show", show}, {"why", why}};

}  // namespace

int run(const std::vector<std::string>& arguments) {
  const auto asks_for_help = [](const std::string& word) {
    return word == "--help" || word == "-h";
  };
  if (std::ranges::any_of(arguments, asks_for_help)) throw cli::PrintAndExit{kUsageText};
  const std::string name = arguments.empty() ? "" : arguments.front();
  const auto* const found = std::ranges::find(kSubcommands, name, &Subcommand::name);
  if (found == std::end(kSubcommands))
    throw cli::Failure((name.empty() ? "which one?" : "'" + name + "' is none of its commands;") +
                           std::string(" see: rocemu trace --help"),
                       cli::kUsage);
  return found->run(std::span(arguments).subspan(1));
}

}  // namespace rocemu::trace
