/*
 * A bounded queue with triggers, in C. Built with the header alone:
 *
 *     cc -O2 -I "$(horolog --include-dir)" -o queue queue.c
 *     ./queue                                          # triggers off: one jump each
 *     horolog trace record -o queue.hrt -- ./queue     # triggers on
 */
#include <horolog/trace.h>
#include <stdio.h>

#define ROOM 8

struct queue {
	const char *name;
	int items[ROOM];
	unsigned length;
};

static unsigned long checked;
static unsigned longest;

/* Runs only while queue/bounded is enabled: an invariant that is checked in production when it is needed. */
static void is_bounded(const struct horolog_event *event, const uint64_t *words, uint32_t count)
{
	(void)count;
	checked++;
	if (words[0] > longest)
		longest = (unsigned)words[0];
	if (words[0] > ROOM)
		fprintf(stderr, "%s: %lu items\n", event->name, (unsigned long)words[0]);
}

static int push(struct queue *queue, int item)
{
	if (queue->length == ROOM) {
		HOROLOG_TRIGGER("queue/full", HOROLOG_STRING(queue->name), item);
		return 0;
	}
	queue->items[queue->length++] = item;
	HOROLOG_TRIGGER("queue/push", queue, item, HOROLOG_ARG("length", "items", queue->length));
	HOROLOG_COUNTER("queue/length", "items", queue->length);
	HOROLOG_TRIGGER_CALLBACK("queue/bounded", is_bounded, queue->length);
	return 1;
}

static int pop(struct queue *queue)
{
	HOROLOG_TRIGGER("queue/pop", queue, queue->length);
	return queue->items[--queue->length];
}

int main(void)
{
	struct queue queue = { "orders", { 0 }, 0 };
	int pushed = 0, refused = 0;
	for (int i = 0; i < 1000; i++) {
		while (!push(&queue, i)) {
			refused++;
			HOROLOG_SPAN_BEGIN("queue/drain", HOROLOG_FLOW(i));
			while (queue.length > 0)
				pop(&queue);
			HOROLOG_SPAN_END("queue/drain");
		}
		pushed++;
	}
	printf("pushed %d, refused %d, checked %lu, longest %u\n", pushed, refused, checked, longest);
	return 0;
}
