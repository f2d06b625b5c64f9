package fake

// Files returns the content of each file by its path, such as
// sys/devices/system/cpu/online. It is nil if [Machine.Validate] returns an error.
func (m Machine) Files() map[string]string {
	t, _ := m.tree()
	return t.files
}

// Links returns the target of each symbolic link by its path. Targets are relative, as
// in sysfs. It is nil if [Machine.Validate] returns an error.
func (m Machine) Links() map[string]string {
	t, _ := m.tree()
	return t.links
}
