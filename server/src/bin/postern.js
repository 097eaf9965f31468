#!/usr/bin/env node
// The entry point is plain JavaScript, so that an old Node.js, which cannot load TypeScript, can say what it needs.
import './require-node.js'

await import('./main.ts')
