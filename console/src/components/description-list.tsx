import type { ReactNode } from 'react'
import classes from './description-list.module.css'

/** The properties of a resource, one per line. */
export function DescriptionList({ items }: { items: [name: string, value: ReactNode][] }) {
  return (
    <dl className={classes.list}>
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
