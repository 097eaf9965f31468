#!/usr/bin/env node
// The entry point is plain JavaScript, so that a Node.js version too old to load TypeScript can still report the
// required version.
import './require-node.js'

await import('./main.ts')
