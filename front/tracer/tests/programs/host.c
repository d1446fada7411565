/* Loads a library, runs its site five times, unloads it; twice. Has no site itself. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 1;
	for (int round = 0; round < 2; round++) {
		void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			return 2;
		int (*run)(int) = (int (*)(int))dlsym(handle, "run");
		size_t (*enabled)(void) = (size_t(*)(void))dlsym(handle, "enabled_sites");
		run(5);
		printf("enabled %zu\n", enabled());
		dlclose(handle);
	}
	return 0;
}
