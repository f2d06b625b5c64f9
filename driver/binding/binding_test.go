package binding

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

const (
	drive = "0001:21:00.0"
	card  = "0001:31:00.0"
	vf    = "0001:31:00.1" // of card
	bare  = "0001:41:00.0" // has no driver

	bareDisk = "../../devices/pci0001:40/" + bare + "/ata1/host0/target0:0:0/0:0:0:0/block/sda"
)

func machine() fake.Machine {
	m := fake.Presets()[0].Machine
	noDriver := fake.NVMe(bare, 0, 1)
	noDriver.Driver, noDriver.Children, noDriver.Namespaces = "", nil, 0
	nic := fake.ConnectX(card, 1, "ens1", 0, 2)
	nic.VFDriver = "mlx5_core"
	m.PCI = []fake.Function{fake.NVMe(drive, 0, 0), nic, noDriver}
	m.Drivers, m.IOMMU = []string{"uio_pci_generic", "vfio-pci"}, true
	return m
}

func newHost(t *testing.T, m fake.Machine) *sysfs.Host {
	t.Helper()
	host, err := sysfs.NewHost(m)
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func TestBoundAndRestored(t *testing.T) {
	for name, row := range map[string]struct {
		address string
		before  State
	}{
		"a drive":              {drive, State{Driver: "nvme"}},
		"a virtual function":   {vf, State{Driver: "mlx5_core"}},
		"without a driver":     {bare, State{}},
		"overridden, not used": {drive, State{Override: "vfio-pci"}},
		"overridden with it":   {drive, State{Driver: "nvme", Override: "nvme"}},
		"bound by hand":        {drive, State{Driver: "uio_pci_generic"}},
		"overridden later":     {drive, State{Driver: "nvme", Override: "vfio-pci"}},
	} {
		t.Run(name, func(t *testing.T) {
			kernel := newHost(t, machine())
			host := New(kernel, kernel.Write)
			if err := host.Restore(row.address, row.before); err != nil {
				t.Fatal(err)
			}
			expect(t, kernel, row.address, row.before)
			for range 2 { // again changes nothing
				if err := host.Bind(row.address, "vfio-pci"); err != nil {
					t.Fatal(err)
				}
				expect(t, kernel, row.address, State{"vfio-pci", "vfio-pci"})
			}
			for range 2 {
				if err := host.Restore(row.address, row.before); err != nil {
					t.Fatal(err)
				}
				expect(t, kernel, row.address, row.before)
			}
		})
	}
}

// A crash after any write is healed by doing it again, and by going back.
func TestCrashDuringBindHeals(t *testing.T) {
	before := State{Driver: "nvme"}
	crash := errors.New("crash")
	for _, restored := range []bool{false, true} {
		for last := range 4 {
			kernel := newHost(t, machine())
			writes := 0
			dying := New(kernel, func(name, text string) error {
				if writes++; writes > last {
					return crash
				}
				return kernel.Write(name, text)
			})
			if err := dying.Bind(drive, "vfio-pci"); (err != nil) != (last < 3) || err != nil && !errors.Is(err, crash) {
				t.Fatalf("%d writes: %v", last, err)
			}
			host := New(kernel, kernel.Write)
			want := State{"vfio-pci", "vfio-pci"}
			err := host.Bind(drive, "vfio-pci")
			if restored {
				want, err = before, host.Restore(drive, before)
			}
			if err != nil {
				t.Fatal(err)
			}
			expect(t, kernel, drive, want)
		}
	}
}

func TestCrashDuringRestoreHeals(t *testing.T) {
	before := State{Driver: "uio_pci_generic"}
	crash := errors.New("crash")
	for last := range 5 {
		kernel := newHost(t, machine())
		host := New(kernel, kernel.Write)
		if err := errors.Join(host.Restore(drive, before), host.Bind(drive, "vfio-pci")); err != nil {
			t.Fatal(err)
		}
		writes := 0
		dying := New(kernel, func(name, text string) error {
			if writes++; writes > last {
				return crash
			}
			return kernel.Write(name, text)
		})
		if err := dying.Restore(drive, before); (err != nil) != (last < 4) || err != nil && !errors.Is(err, crash) {
			t.Fatalf("%d writes: %v", last, err)
		}
		if err := host.Restore(drive, before); err != nil {
			t.Fatal(err)
		}
		expect(t, kernel, drive, before)
	}
}

func TestWhatIsNotBound(t *testing.T) {
	plain := machine()
	unloaded, open := plain, plain
	unloaded.Drivers, open.IOMMU = nil, false
	for name, row := range map[string]struct {
		machine fake.Machine
		files   map[string]string // beside those of the machine; with -> a link
		address string
		want    string
	}{
		"no driver":         {unloaded, nil, drive, "PCI function 0001:21:00.0: kernel driver vfio-pci is not loaded on this node: modprobe vfio-pci"},
		"no IOMMU":          {open, nil, drive, "PCI function 0001:21:00.0: it is in no IOMMU group: enable the IOMMU"},
		"gone":              {plain, nil, "0001:99:00.0", "PCI function 0001:99:00.0: the machine no longer has it"},
		"no address":        {plain, nil, "../../devices", `PCI address "../../devices": want one`},
		"virtual functions": {plain, nil, card, "PCI function 0001:31:00.0: the host uses it: it has virtual functions"},
		"mounted":           {plain, map[string]string{"sys/fs/ext4/nvme0n1/uevent": ""}, drive, "PCI function 0001:21:00.0: the host uses it: disk nvme0n1 has a mounted file system, or swap"},
		"partition mounted": {plain, map[string]string{"sys/class/block/nvme0n1p2": "->../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p2", "sys/fs/xfs/nvme0n1p2/uevent": ""}, drive, "the host uses it: disk nvme0n1p2 has a mounted file system"},
		"btrfs":             {plain, map[string]string{"sys/fs/btrfs/0-1/devices/nvme0n1/uevent": ""}, drive, "the host uses it: disk nvme0n1 has a mounted file system"},
		"not to be read":    {plain, map[string]string{"sys/bus/pci/devices/" + drive + "/net/a b/uevent": ""}, drive, "PCI function 0001:21:00.0: check whether the host uses it: "},
		"erofs":             {plain, map[string]string{"sys/fs/erofs/nvme0n1/uevent": ""}, drive, "the host uses it: disk nvme0n1 has a mounted file system"},
		"bcachefs":          {plain, map[string]string{"sys/fs/bcachefs/0-1/dev-0/block": "->../../../../class/block/nvme0n1"}, drive, "the host uses it: disk nvme0n1 has a mounted file system"},
		"bcachefs of two":   {plain, map[string]string{"proc/1/mountinfo": "30 1 0:44 / /data rw shared:1 - bcachefs /dev/sda:/dev/nvme0n1 rw\n"}, drive, "the host uses it: disk nvme0n1 has a mounted file system"},
		"vfat":              {plain, map[string]string{"sys/class/block/nvme0n1p1": "->../../devices/pci0001:20/" + drive + "/nvme/nvme0/nvme0n1/nvme0n1p1", "sys/class/block/nvme0n1p1/dev": "259:7\n", "proc/1/mountinfo": "29 1 259:7 / /boot/efi rw - vfat /dev/disk/by-label/EFI rw\n"}, drive, "the host uses it: disk nvme0n1p1 has a mounted file system"},
		"in another space":  {plain, map[string]string{"proc/1/mountinfo": "29 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "proc/77/mountinfo": "29 1 259:0 / /mnt rw - exfat /dev/nvme0n1 rw\n"}, drive, "the host uses it: disk nvme0n1 has a mounted file system"},
		"swap":              {plain, map[string]string{"proc/swaps": "Filename Type Size Used Priority\n/dev/nvme0n1 partition 8 0 -2\n"}, drive, "the host uses it: disk nvme0n1 has a mounted file system, or swap"},
		"root behind it":    {plain, map[string]string{"sys/class/block/sda": "->" + bareDisk, "sys/class/block/sda1": "->" + bareDisk + "/sda1", "sys/class/block/sda1/dev": "8:1\n", "proc/1/mountinfo": "29 1 8:1 / / rw - ext4 /dev/root rw\n"}, bare, "PCI function 0001:41:00.0: the host uses it: disk sda1 has a mounted file system, or swap"},
		"a bond":            {plain, map[string]string{"sys/class/net/ens1/upper_bond0": ""}, card, "the host uses it: network interface ens1 is part of bond0"},
		"virtio in a bridge": {plain, map[string]string{
			"sys/bus/pci/devices/" + bare + "/driver": "->../../../../bus/pci/drivers/virtio-pci", "sys/bus/pci/devices/" + bare + "/virtio0/net/eth0/mtu": "", "sys/class/net/eth0/upper_br0": "",
		}, bare, "the host uses it: network interface eth0 is part of br0"},
		"a volume": {plain, map[string]string{"sys/class/block/nvme0n1/holders/dm-0/uevent": ""}, drive, "the host uses it: disk nvme0n1 is part of dm-0"},
	} {
		t.Run(name, func(t *testing.T) {
			kernel := newHost(t, row.machine)
			host := New(overlay{kernel, row.files}, func(string, string) error {
				t.Error("wrote")
				return nil
			})
			if err := host.Bind(row.address, "vfio-pci"); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %s", err, row.want)
			}
		})
	}
}

func TestADriverThatRefusesIsAnErrorAndTheFunctionGoesBack(t *testing.T) {
	kernel := newHost(t, machine())
	kernel.Refuse("vfio-pci", true)
	host := New(kernel, kernel.Write)
	err := host.Bind(drive, "vfio-pci")
	if want := "PCI function 0001:21:00.0: kernel driver vfio-pci did not bind, the bound driver is none: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := host.Restore(drive, State{Driver: "nvme"}); err != nil {
		t.Fatal(err)
	}
	expect(t, kernel, drive, State{Driver: "nvme"})
}

func TestNothingIsRestoredOfAFunctionThatIsGone(t *testing.T) {
	kernel := newHost(t, machine())
	if err := New(kernel, kernel.Write).Restore("0001:99:00.0", State{Driver: "nvme"}); err != nil {
		t.Error(err)
	}
}

// The kernel waits for the last user of a function, the driver does not.
func TestAWriteThatTheKernelDoesNotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kernel := newHost(t, machine())
		let := make(chan struct{})
		host := New(kernel, func(name, text string) error {
			if strings.HasSuffix(name, "/unbind") {
				<-let
			}
			return kernel.Write(name, text)
		})
		begin := time.Now()
		var busy *BusyError
		for _, want := range []string{"/driver/unbind: the kernel has not finished", "the previous write: the kernel has not finished"} {
			if err := host.Bind(drive, "vfio-pci"); !errors.As(err, &busy) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %s", err, want)
			}
		}
		var other *BusyError
		if err := host.Bind(vf, "vfio-pci"); !errors.As(err, &other) || !strings.Contains(err.Error(), vf+": write") {
			t.Errorf("error %v, want one of its own", err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("three calls took %s", took)
		}
		if err := busy.Wait(time.Minute); !errors.Is(err, busy) {
			t.Errorf("after a minute: %v, want that it is still busy", err)
		}
		close(let)
		for _, busy := range []*BusyError{busy, other} {
			if err := busy.Wait(time.Minute); err != nil {
				t.Error(err)
			}
		}
		if err := host.Bind(drive, "vfio-pci"); err != nil {
			t.Error(err)
		}
	})
}

func expect(t *testing.T, files fs.FS, address string, want State) {
	t.Helper()
	if got, err := Read(files, address); err != nil || got != want {
		t.Errorf("PCI function %s has %+v, %v, want %+v", address, got, err, want)
	}
}

func TestReadOfAFunctionThatIsGone(t *testing.T) {
	if _, err := Read(newHost(t, machine()), "0001:99:00.0"); !errors.Is(err, devnode.ErrGone) {
		t.Error(err)
	}
}

// overlay has files beside those of a machine.
type overlay struct {
	*sysfs.Host
	files map[string]string
}

func (o overlay) added() fstest.MapFS {
	added := fstest.MapFS{}
	for name, text := range maps.All(o.files) {
		added[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return added
}

func (o overlay) ReadLink(name string) (string, error) {
	if target, link := strings.CutPrefix(o.files[name], "->"); link {
		return target, nil
	}
	return o.Host.ReadLink(name)
}

func (o overlay) Open(name string) (fs.File, error) {
	if file, err := o.added().Open(name); err == nil {
		return file, nil
	}
	return o.Host.Open(name)
}
