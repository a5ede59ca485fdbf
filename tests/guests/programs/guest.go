// Goroutines that call C, which allocates and calls back.
package main

// #include "guest_c.h"
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

//export double_it
func double_it(n C.long) C.long {
	return C.long(len(strings.Repeat("xy", int(n))))
}

func work(n int) int64 {
	var list *C.struct_item
	for i := 0; i < 3000; i++ {
		list = C.push(list, C.long(i*n))
		if i%100 == 0 {
			s := C.CString(fmt.Sprint("string ", i))
			defer C.free(unsafe.Pointer(s))
		}
	}
	sum := int64(C.drain(list))
	for i := 0; i < 100; i++ {
		sum += int64(C.call_back(C.long(i)))
	}
	runtime.GC()
	return sum
}

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	var wait sync.WaitGroup
	results := make([]int64, 16)
	for i := range results {
		wait.Add(1)
		go func(i int) {
			runtime.LockOSThread() // the thread ends with its goroutine
			results[i] = work(i + 1)
			wait.Done()
		}(i)
	}
	wait.Wait()
	fmt.Println(results)
	syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-signals)
	words := map[string]int{}
	for i := 0; i < 100000; i++ {
		words[fmt.Sprint(i%5003)]++
	}
	keys := make([]string, 0, len(words))
	for k := range words {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	fmt.Println(len(keys), keys[:3])
	out, err := exec.Command("sh", "-c", "echo from a child; exit 3").CombinedOutput()
	fmt.Print(string(out), err, "\n")
	func() {
		defer func() { fmt.Println(recover()) }()
		var p *int
		*p = 1
	}()
	os.Exit(4)
}
