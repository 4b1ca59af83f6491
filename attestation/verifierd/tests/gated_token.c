/* A library of PKCS #11 whose signatures wait while the file $GATE exists, and take 1.5 s longer
   while $GATE.slow does, and which lists no slots while $GATE.slots does. Everything else is SoftHSM's. Each signature adds a byte to the file $SIGNED when it begins, and another when it ends. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef unsigned long (*function)(unsigned long, void *, unsigned long, void *, unsigned long *);

/* CK_FUNCTION_LIST of version 2: its version, then 68 functions. C_GetSlotList is the fourth
   after the first, C_Sign the 43rd. */
struct list {
    unsigned char version[8];
    function functions[68];
};

static struct list own;
static function sign, slots;

static void say(void) {
    FILE *file = fopen(getenv("SIGNED"), "a");
    if (file) {
        fputc('.', file);
        fclose(file);
    }
}

static int there(const char *which) {
    char gate[4096];
    snprintf(gate, sizeof gate, "%s%s", getenv("GATE"), which);
    return access(gate, F_OK) == 0;
}

static unsigned long gated(unsigned long session, void *data, unsigned long length, void *out,
                           unsigned long *space) {
    if (!out) return sign(session, data, length, out, space); /* asks for the length */
    say();
    while (there("")) usleep(5000);
    if (there(".slow")) usleep(1500000);
    unsigned long result = sign(session, data, length, out, space);
    say();
    return result;
}

static unsigned long gated_slots(unsigned long present, void *out, unsigned long count, void *a,
                                 unsigned long *b) {
    while (there(".slots")) usleep(5000);
    return slots(present, out, count, a, b);
}

unsigned long C_GetFunctionList(struct list **out) {
    void *library = dlopen(SOFTHSM, RTLD_NOW);
    unsigned long (*get)(struct list **) =
        library ? (unsigned long (*)(struct list **))dlsym(library, "C_GetFunctionList") : NULL;
    struct list *theirs;
    if (!get || get(&theirs) != 0) return 5;
    own = *theirs;
    slots = own.functions[4];
    own.functions[4] = gated_slots;
    sign = own.functions[43];
    own.functions[43] = gated;
    *out = &own;
    return 0;
}
