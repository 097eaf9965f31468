import type { MantineColorsTuple } from '@mantine/core'

/** How much white (above 0) or black (below 0) each of the ten shades has. The eighth is the colour itself. */
const mixes = [0.92, 0.84, 0.66, 0.5, 0.36, 0.22, 0.1, 0, -0.15, -0.3]

/** The shades of a colour, #rrggbb, from light to dark. */
export const shadesOf = (color: string): MantineColorsTuple =>
  mixes.map((mix) => mixed(color, mix)) as unknown as MantineColorsTuple

function mixed(color: string, mix: number): string {
  const target = mix > 0 ? 255 : 0
  const parts = [1, 3, 5].map((start) => {
    const part = Number.parseInt(color.slice(start, start + 2), 16)
    return Math.round(part + (target - part) * Math.abs(mix))
      .toString(16)
      .padStart(2, '0')
  })
  return `#${parts.join('')}`
}
