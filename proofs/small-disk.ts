import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

const exec = promisify(execFile)

/** A small file system in a file. It is filled by a growing file, and freed by deleting that file. */
export class SmallDisk {
  /** A folder in the file system. The caller sets its owner. */
  readonly directory: string
  readonly #ballast: string
  readonly #mount: string
  readonly #home: string

  private constructor(home: string) {
    this.#home = home
    this.#mount = path.join(home, 'mounted')
    this.directory = path.join(this.#mount, 'used')
    this.#ballast = path.join(this.#mount, 'ballast')
  }

  static async make(megabytes: number): Promise<SmallDisk> {
    const disk = new SmallDisk(await mkdtemp(path.join(tmpdir(), 'postern-disk-')))
    const image = path.join(disk.#home, 'image')
    await exec('chmod', ['755', disk.#home])
    await mkdir(disk.#mount)
    await exec('truncate', ['--size', `${megabytes}M`, image])
    // Reserves no blocks for root; otherwise root would not notice a full disk.
    await exec('mkfs.ext4', ['-q', '-F', '-m', '0', image])
    await exec('mount', ['-o', 'loop', image, disk.#mount])
    await mkdir(disk.directory)
    return disk
  }

  /** Fills the file system to the last block. */
  async fill(): Promise<void> {
    const file = await open(this.#ballast, 'w')
    try {
      for (let size = 1024 * 1024; size >= 512; size /= 2) {
        const chunk = Buffer.alloc(size, 1)
        while (await fits(file.write(chunk)));
      }
    } finally {
      await file.close()
    }
  }

  free(): Promise<void> {
    return rm(this.#ballast)
  }

  async remove(): Promise<void> {
    await exec('umount', ['--lazy', this.#mount])
    await rm(this.#home, { recursive: true, force: true })
  }
}

async function fits(write: Promise<unknown>): Promise<boolean> {
  try {
    await write
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}
