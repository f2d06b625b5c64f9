package main

import (
	"regexp"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const (
	project = "dra-driver-numa"
	home    = "https://github.com/dra-driver-numa/dra-driver-numa"
	license = "Apache-2.0"

	// unknown is the word of SPDX for what a document does not say: the licences of
	// modules are not in the programs.
	unknown = "NOASSERTION"
)

// options are what the programs do not say.
type options struct {
	version string    // of the release, such as v0.1.0
	created time.Time // of the document
}

// document collects packages and relations.
type document struct {
	packages  []*v2_3.Package
	relations []*v2_3.Relationship
	known     map[common.ElementID]bool
}

// render returns the document: the release contains programs, and a program depends on
// modules. Programs and modules are in the order in which they are found.
func render(o options, programs []program) *v2_3.Document {
	d := document{known: map[common.ElementID]bool{}}
	release := d.add(v2_3.Package{PackageName: project, PackageVersion: o.version, PackageLicenseDeclared: license, PackageDownloadLocation: home + "/releases/tag/" + o.version})
	d.relate("DOCUMENT", common.TypeRelationshipDescribe, release)
	for _, p := range programs {
		d.program(o, release, p)
	}
	return &v2_3.Document{
		SPDXVersion:       v2_3.Version,
		DataLicense:       v2_3.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      project + "-" + o.version,
		DocumentNamespace: home + "/releases/download/" + o.version + "/" + project + "_" + o.version + ".spdx.json",
		CreationInfo: &v2_3.CreationInfo{
			Created:  o.created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Organization", Creator: project}, {CreatorType: "Tool", Creator: "sbom"}},
		},
		Packages:      d.packages,
		Relationships: d.relations,
	}
}

// program adds a program and the modules that are in it.
func (d *document) program(o options, release common.ElementID, p program) {
	var source string
	if p.compiler != "" {
		source = "C compiler: " + p.compiler
	}
	program := d.add(v2_3.Package{
		PackageName:            p.name + " for " + p.platform,
		PackageSourceInfo:      source,
		PackageVersion:         o.version,
		PackageLicenseDeclared: license,
		PackageChecksums:       []common.Checksum{{Algorithm: common.SHA256, Value: p.sha256}},
		PrimaryPackagePurpose:  "APPLICATION",
	})
	d.relate(release, common.TypeRelationshipContains, program)
	// The standard library and the runtime, under the name that databases of
	// vulnerabilities have for them.
	d.relate(program, common.TypeRelationshipDependsOn, d.module("stdlib", strings.TrimPrefix(p.info.GoVersion, "go"), ""))
	for _, required := range p.info.Deps {
		m := linked(required)
		d.relate(program, common.TypeRelationshipDependsOn, d.module(m.Path, m.Version, m.Sum))
	}
}

// module adds a module of Go with its sum of go.sum.
func (d *document) module(path, version, sum string) common.ElementID {
	p := v2_3.Package{
		PackageName:            path,
		PackageVersion:         version,
		PackageLicenseDeclared: unknown,
		PrimaryPackagePurpose:  "LIBRARY",
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager,
			RefType:  common.TypePackageManagerPURL,
			Locator:  "pkg:golang/" + path + "@" + version,
		}},
	}
	if sum != "" {
		p.PackageSourceInfo = "go.sum: " + sum
	}
	return d.add(p)
}

// notInIDs are the characters that an identifier of SPDX may not have.
var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// add adds a package once, and returns its identifier.
func (d *document) add(p v2_3.Package) common.ElementID {
	p.PackageSPDXIdentifier = common.ElementID(notInIDs.ReplaceAllString("Package-"+p.PackageName+"-"+p.PackageVersion, "-"))
	p.PackageLicenseConcluded, p.PackageCopyrightText = unknown, unknown
	if p.PackageDownloadLocation == "" {
		p.PackageDownloadLocation = unknown
	}
	p.IsFilesAnalyzedTagPresent = true // and false: no single files are listed
	if !d.known[p.PackageSPDXIdentifier] {
		d.known[p.PackageSPDXIdentifier] = true
		d.packages = append(d.packages, &p)
	}
	return p.PackageSPDXIdentifier
}

func (d *document) relate(from common.ElementID, relation string, to common.ElementID) {
	d.relations = append(d.relations, &v2_3.Relationship{
		RefA:         common.DocElementID{ElementRefID: from},
		RefB:         common.DocElementID{ElementRefID: to},
		Relationship: relation,
	})
}
