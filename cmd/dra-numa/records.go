package main

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// filesPeriod bounds how long a file that another program has removed is missing.
const filesPeriod = 30 * time.Second

// repairFiles writes files of claims again that another program has removed.
func (w *watcher) repairFiles(ctx context.Context) error {
	if time.Since(w.filed) < filesPeriod {
		return nil
	}
	w.filed = time.Now()
	written, err := w.core.RepairFiles()
	for _, name := range written {
		klog.FromContext(ctx).Info("Another program had removed a file of the driver: it is written again", "file", name)
	}
	return err
}
