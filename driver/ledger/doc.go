// Package ledger is what the claims of a node hold, as data: shares, grants and lists of
// them, the checkpoint with its text, and what is on record after a start. It decides
// nothing and changes nothing on the host. Package driver does.
package ledger
