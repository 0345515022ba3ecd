// Every rank sends every rank a block of its own, of an integer up to a megabyte; each word says
// who sent it to whom, and all are checked. Rank 0 prints how many words were right everywhere.
#include <mpi.h>
#include <stdio.h>

#include <cstddef>
#include <vector>

namespace {

constexpr int kRounds = 10;

// Words of a block in round i: 1, 4, 16 ... 262144.
int words_of(int round) { return 1 << (2 * round); }

int word(int from, int to, int round, int i) {
  return from * 1000003 + to * 10007 + round * 101 + i;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long right = 0;
  long all = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int words = words_of(round);
    const size_t total = static_cast<size_t>(words) * static_cast<size_t>(ranks);
    std::vector<int> sent(total), received(total);
    for (int to = 0; to < ranks; ++to)
      for (int i = 0; i < words; ++i)
        sent[static_cast<size_t>(to) * static_cast<size_t>(words) + static_cast<size_t>(i)] =
            word(rank, to, round, i);
    MPI_Alltoall(sent.data(), words, MPI_INT, received.data(), words, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; ++from)
      for (int i = 0; i < words; ++i)
        right += received[static_cast<size_t>(from) * static_cast<size_t>(words) +
                          static_cast<size_t>(i)] == word(from, rank, round, i);
    all += static_cast<long>(total);
  }
  long right_everywhere = 0;
  MPI_Reduce(&right, &right_everywhere, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s words right\n", right_everywhere == all * ranks ? "all" : "not all");
  return MPI_Finalize();
}
