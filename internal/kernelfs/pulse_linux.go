package kernelfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Pulse is a timer of the kernel and the files that are waited for. One goroutine may wait. A
// timer of the Go runtime also wakes the runtime's monitor and is late or early by up to a
// millisecond, which takes more wakes. So does a system call that waits: the runtime has
// another thread look for work meanwhile.
type Pulse struct {
	epoll *os.File        // of timer and the files
	conn  syscall.RawConn // of epoll
	timer int
}

// NewPulse returns a pulse that beats each period, and when one of the files, such as an inotify
// instance, can be read. The files stay the caller's, which must close the pulse first.
func NewPulse(period time.Duration, files ...int) (*Pulse, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll instance: %w", err)
	}
	timer, err := newTimer(period)
	if err != nil {
		return nil, errors.Join(err, syscall.Close(epoll))
	}
	p := &Pulse{timer: timer}
	for _, fd := range append(files, timer) {
		event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
		err = errors.Join(err, os.NewSyscallError("epoll_ctl", syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &event)))
	}
	// The runtime's poller waits for the epoll instance, and with it for all that is in it.
	err = errors.Join(err, os.NewSyscallError("set nonblock", syscall.SetNonblock(epoll, true)))
	p.epoll = os.NewFile(uintptr(epoll), "epoll")
	if err == nil {
		p.conn, err = p.epoll.SyscallConn()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// newTimer returns a timer that can be read each period: see timerfd_create(2).
func newTimer(period time.Duration) (fd int, err error) {
	const monotonic = 1
	timer, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return 0, os.NewSyscallError("timerfd_create", errno)
	}
	spec := struct{ interval, first syscall.Timespec }{syscall.NsecToTimespec(int64(period)), syscall.NsecToTimespec(int64(period))}
	if _, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, timer, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		return 0, errors.Join(os.NewSyscallError("timerfd_settime", errno), syscall.Close(int(timer)))
	}
	return int(timer), nil
}

// Wait waits for the next beat. If the caller was busy for several periods, it returns once
// for all of them. It returns false if the pulse is closed.
func (p *Pulse) Wait() (open bool) {
	var events [1]syscall.EpollEvent
	err := p.conn.Read(func(epoll uintptr) (ready bool) {
		n, _, _ := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, epoll, uintptr(unsafe.Pointer(&events)), 1, 0, 0, 0)
		return int(n) == 1 // an error is -1: it waits for the next event
	})
	if err != nil { // the only one: it is closed
		return false
	}
	var beats [8]byte
	_, _ = Read(p.timer, beats[:]) // EAGAIN: a file has something to read
	return true
}

// Close ends Wait. It may be called at any time, and again.
func (p *Pulse) Close() error {
	if err := p.epoll.Close(); err != nil {
		return err // closed before
	}
	return syscall.Close(p.timer)
}

// Read reads a file that never has to wait for its content, such as one of cgroup v2, sysfs
// or inotify. It does not tell the Go runtime of the system call: that wakes the runtime's
// monitor if the program was idle.
func Read(fd int, buf []byte) (n int, err error) {
	return result(syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf))))
}

// readStart reads from the start of a file, as [Read] does.
func readStart(fd int, buf []byte) (n int, err error) {
	return result(syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0, 0, 0))
}

func result(n, _ uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
