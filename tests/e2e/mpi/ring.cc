// ring [times]: a message goes round all ranks ten times, growing from an integer to a megabyte;
// each rank checks every word of it and adds one. All that happens once, or as often as asked for,
// and rank 0 prints how far it came.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

namespace {

constexpr int kRounds = 10;

// Words of round i: 1, 4, 16 ... 262144.
int words_of(int round) { return 1 << (2 * round); }

[[noreturn]] void give_up(int rank, int round) {
  printf("rank %d, round %d: another message than was sent\n", rank, round);
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

// Returns how often the message has been handed on.
int go_round(int rank, int ranks) {
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  int hops = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> message(words_of(round), hops);
    const auto send = [&] {
      for (int& word : message) ++word;
      MPI_Send(message.data(), words_of(round), MPI_INT, next, round, MPI_COMM_WORLD);
    };
    if (rank == 0) send();
    MPI_Recv(message.data(), words_of(round), MPI_INT, previous, round, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    const int expected = round * ranks + (rank == 0 ? ranks : rank);
    if (std::any_of(message.begin(), message.end(), [&](int word) { return word != expected; }))
      give_up(rank, round);
    hops = message[0];
    if (rank != 0) send();
  }
  return hops;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int times = argc > 1 ? atoi(argv[1]) : 1;
  int counted = 0;
  for (int time = 0; time < times; ++time) counted += go_round(rank, ranks);
  if (rank == 0) printf("%d hops, %d counted\n", times * kRounds * ranks, counted);
  return MPI_Finalize();
}
