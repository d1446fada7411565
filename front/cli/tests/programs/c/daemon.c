// The command ends with 7 after a moment; a daemon of its goes on for a second and writes a file at its end.
#include "horolog/trace.h"
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		if (child) {
			usleep(i ? 0 : 100000);
			_exit(child < 0 ? 9 : i ? 0 : 7);
		}
		setsid();
	}
	for (int i = 0; i < 20; i++) {
		HOROLOG_TRIGGER("row/step", i);
		usleep(50000);
	}
	int file = open(argv[argc - 1], O_CREAT | O_WRONLY, 0600);
	return write(file, "done\n", 5) != 5;
}
