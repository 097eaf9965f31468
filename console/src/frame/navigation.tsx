import { VisuallyHidden } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Badge } from '../components/badge.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import type { Tone } from '../components/tone.ts'
import classes from './navigation.module.css'

/** What needs attention in a section. */
export interface SectionCount {
  count: number
  tone: Tone
  /** "3 open appeals". */
  text: string
}

export interface Section {
  to: string
  label: string
  icon: IconName
  /** Pressed after `g`, it opens the section. */
  key: string
  /** Whether the section has no pages below its own. By default, only the home page of the entrance has none. */
  isExact?: boolean
  /** The label in the command palette, if it is another one. */
  command?: string
}

/** Sections that belong together. The first group needs no label. */
export interface SectionGroup {
  label?: string
  sections: readonly Section[]
}

/** By the path of the section. */
export type SectionCounts = Partial<Record<string, SectionCount>>

const maxCount = 99

const shownCount = (count: number): string => (count > maxCount ? `${maxCount}+` : String(count))

/** The links of the navigation. The router marks the current section with aria-current. */
export function Navigation({
  groups,
  counts,
  onSelect,
}: {
  groups: readonly SectionGroup[]
  counts: SectionCounts
  onSelect: () => void
}) {
  return groups.map(({ label, sections }) => (
    <ul key={sections[0]?.to} className={classes.group} aria-label={label}>
      {label && (
        <li className={classes.label} aria-hidden="true">
          {label}
        </li>
      )}
      {sections.map((section) => (
        <li key={section.to}>
          <SectionLink section={section} count={counts[section.to]} onSelect={onSelect} />
        </li>
      ))}
    </ul>
  ))
}

function SectionLink({
  section: { to, label, icon, isExact = to === '/' },
  count,
  onSelect,
}: {
  section: Section
  count: SectionCount | undefined
  onSelect: () => void
}) {
  return (
    <Link
      to={to}
      activeOptions={{ exact: isExact, includeSearch: false }}
      className={classes.section ?? ''}
      activeProps={{ 'data-active': true }}
      onClick={onSelect}
    >
      <Icon name={icon} />
      <span className={classes.name}>{label}</span>
      {count && count.count > 0 && (
        <span title={count.text}>
          <Badge tone={count.tone}>
            <span aria-hidden="true">{shownCount(count.count)}</span>
            <VisuallyHidden>: {count.text}</VisuallyHidden>
          </Badge>
        </span>
      )}
    </Link>
  )
}
