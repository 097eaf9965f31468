import { rm } from 'node:fs/promises'
import { buildSite, builtPage } from '../site-build.ts'

/** An unfinished build must not look like a finished one. */
export async function buildDocumentation(signal: AbortSignal): Promise<void> {
  try {
    await buildSite(signal)
  } catch (error) {
    await rm(builtPage, { force: true })
    throw error
  }
}
