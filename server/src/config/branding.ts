import { createHash } from 'node:crypto'
import { Wrong } from '../platform/settings.ts'

/**
 * What the operator calls the installation: parsers for the name, the colour and the logo that both web entrances and
 * system mail show.
 */
export interface Logo {
  type: 'image/svg+xml' | 'image/png'
  bytes: Buffer
  /** Part of the logo's URL, so that a new logo is not hidden by a cache. */
  digest: string
}

const maxNameCharacters = 50
export const maxLogoBytes = 64 * 1024

export function installationName(value: string): string {
  const name = value.trim()
  // Line breaks would end a header field of a system message.
  if (name === '' || name.length > maxNameCharacters || /[\p{Cc}\u2028\u2029<>"]/u.test(name)) {
    throw new Wrong(
      `must be a name of 1 to ${maxNameCharacters} characters, without control characters, quotation marks, < or >`,
    )
  }
  return name
}

/** WCAG 2.2, 1.4.3. */
const minContrast = 4.5

/** Buttons have white text on this colour. */
export function accentColor(value: string): string | undefined {
  if (value === '') return undefined
  if (!/^#[0-9a-f]{6}$/i.test(value)) throw new Wrong(`must look like #2f4fd0, not "${value}"`)
  const contrast = contrastWithWhite(value)
  if (contrast < minContrast) {
    // Rounded down, so that 4.49 is not shown as 4.5.
    const shown = (Math.floor(contrast * 10) / 10).toFixed(1)
    throw new Wrong(
      `is too light for white text: its contrast is ${shown}:1, and ${minContrast}:1 is needed. Choose a darker colour`,
    )
  }
  return value.toLowerCase()
}

/** WCAG 2.2, "contrast ratio" and "relative luminance". */
function contrastWithWhite(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const share = Number.parseInt(color.slice(start, start + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
}

export function readLogo(bytes: Buffer): Logo {
  if (bytes.length > maxLogoBytes) {
    throw new Wrong(`has ${bytes.length} bytes; a logo can have at most ${maxLogoBytes}`)
  }
  return {
    type: typeOf(bytes),
    bytes,
    digest: createHash('sha256').update(bytes).digest('hex').slice(0, 16),
  }
}

function typeOf(bytes: Buffer): Logo['type'] {
  if (isPng(bytes)) return 'image/png'
  const text = svgText(bytes)
  if (text === undefined) throw new Wrong('is neither an SVG nor a PNG image')
  // The response's content security policy also stops scripts. A logo that contains one is more likely an attack than a logo.
  if (/<(?:[\w.-]+:)?script\b|\son\w+\s*=|javascript:|<!ENTITY/i.test(text)) {
    throw new Wrong('is an SVG with scripts, event handlers or entities; remove them')
  }
  return 'image/svg+xml'
}

/** The signature, and a first chunk with a width and a height (PNG specification, 5.2 and 11.2.2). */
const isPng = (bytes: Buffer): boolean =>
  bytes.length > 33 &&
  bytes.subarray(0, 8).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) &&
  bytes.toString('latin1', 12, 16) === 'IHDR' &&
  bytes.readUInt32BE(16) > 0 &&
  bytes.readUInt32BE(20) > 0

/** Undefined if the root element is not that of an SVG image. */
function svgText(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const root = text
      .replace(/<!--[\s\S]*?-->/g, '')
      .match(/^\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE[^>]*>\s*)?<svg\b[^>]*>/i)
    return root?.[0].includes('http://www.w3.org/2000/svg') ? text : undefined
  } catch {
    return undefined
  }
}
