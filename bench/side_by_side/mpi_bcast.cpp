// MPI_Bcast of a file: rank 0 reads OBJECT, every other rank writes PREFIX.<rank>.
//
//   mpirun -np N+1 ... mpi_bcast OBJECT PREFIX
//
// It times itself, from a barrier once all connections are open until the last rank has written everything, so that
// starting MPI is not counted, and prints that time and the CPU time of all ranks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr std::size_t chunk_bytes = 4u << 20;

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

void broadcast(char* at, std::size_t bytes) { MPI_Bcast(at, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD); }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);

  const std::string path = rank == 0 ? argv[1] : std::string(argv[2]) + "." + std::to_string(rank);
  const int file = rank == 0 ? open(path.c_str(), O_RDONLY) : open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  unsigned long long size = static_cast<unsigned long long>(status.st_size);
  MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  std::vector<char> buffer(chunk_bytes);
  char* object = nullptr;
  if (rank == 0) object = static_cast<char*>(mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0));
  for (int i = 0; i < 3; ++i) broadcast(buffer.data(), 65'536);  // opens the connections the tree will use

  MPI_Barrier(MPI_COMM_WORLD);
  const double cpu_before = cpu_seconds(), start = MPI_Wtime();
  for (std::size_t done = 0; done < size; done += chunk_bytes) {
    const std::size_t n = std::min<std::size_t>(chunk_bytes, size - done);
    broadcast(rank == 0 ? object + done : buffer.data(), n);
    if (rank != 0 && pwrite(file, buffer.data(), n, static_cast<off_t>(done)) != static_cast<ssize_t>(n)) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const double mine[2] = {MPI_Wtime() - start, cpu_seconds() - cpu_before};
  double last = 0, cpu = 0;
  MPI_Reduce(&mine[0], &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine[1], &cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("seconds=%.6f cpu=%.6f\n", last, cpu);
  MPI_Finalize();
  return 0;
}
