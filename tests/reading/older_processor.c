/* Makes a program believe that its processor has no AVX-512 (with LD_PRELOAD; x86-64 Linux with CPUID faulting).
   CPUID then raises SIGSEGV, and the handler answers as the processor does, but for these features. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
/* Leaf 7, by register, of the Intel Architecture Instruction Set Extensions Reference. */
#define AVX512_EBX (1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31)
#define AVX512_ECX (1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14)
#define AVX512_EDX (1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25)
/* Leaf 7, subleaf 1: AVX-VNNI and AVX512-BF16. */
#define VNNI_EAX (1u << 4 | 1u << 5)

static void answer(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)registers[REG_RIP];
    if (at[0] != 0x0f || at[1] != 0xa2) {
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    unsigned leaf = registers[REG_RAX], subleaf = registers[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __cpuid_count(leaf, subleaf, a, b, c, d);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && subleaf == 0) {
        b &= ~AVX512_EBX;
        c &= ~AVX512_ECX;
        d &= ~AVX512_EDX;
    } else if (leaf == 7 && subleaf == 1) {
        a &= ~VNNI_EAX;
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0))
        _exit(77);
}
