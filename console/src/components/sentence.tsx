import { createElement, Fragment } from 'react'
import { ExactTime } from './relative-time.tsx'

/** RFC 3339, in UTC. */
const time = /(\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/

/** A sentence of the API. Its times are shown like all others. */
export function Sentence({ text }: { text: string }) {
  const parts = text.split(time)
  return createElement(
    Fragment,
    null,
    ...parts.map((part) => (time.test(part) ? createElement(ExactTime, { at: part }) : part)),
  )
}
