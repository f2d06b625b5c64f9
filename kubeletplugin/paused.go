package kubeletplugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// PauseFile is what an administrator makes in the driver's directory to pause publishing.
const PauseFile = "pause-publishing"

// WhyPaused says why the daemon writes no ResourceSlices now; "" if it may write them. The
// NodeConfig can say so, and a file in dir, which is the driver's.
func WhyPaused(byConfig bool, dir string) string {
	var whys []string
	if byConfig {
		whys = append(whys, "the NodeConfig says publishing: "+deviceclasses.PublishingPaused)
	}
	file := filepath.Join(dir, PauseFile)
	if _, err := os.Lstat(file); err == nil {
		whys = append(whys, "there is the file "+file)
	}
	return strings.Join(whys, ", and ")
}

// lookAtPause looks whether the slices are to stay as they are.
func (p *publisher) lookAtPause() (paused bool) {
	if p.whyPaused == nil {
		return false
	}
	why := p.whyPaused()
	if why != "" {
		why = fmt.Sprintf(deviceclasses.FaultOf(deviceclasses.FaultPaused).Note, why)
	}
	p.say(deviceclasses.FaultPaused, why)
	return why != ""
}

// isPaused returns what lookAtPause last found. Any goroutine may call it.
func (p *publisher) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong[deviceclasses.FaultPaused] != ""
}
