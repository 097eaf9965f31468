import { findPackageJSON } from 'node:module'
import path from 'node:path'

const manifest = findPackageJSON(import.meta.url)
if (manifest === undefined) throw new Error('No package.json found above this program.')

/** A file or folder that is handed on beside the code, wherever that lies: as it was written, or built into few files. */
export const packageFile = (name: string): string => path.join(path.dirname(manifest), name)
