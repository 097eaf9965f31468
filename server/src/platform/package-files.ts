import { findPackageJSON } from 'node:module'
import path from 'node:path'

const manifest = findPackageJSON(import.meta.url)
if (manifest === undefined) throw new Error('No package.json found above this program.')

/** The path of a file or directory shipped with the code. Works in the source tree and in the bundle. */
export const packageFile = (name: string): string => path.join(path.dirname(manifest), name)
