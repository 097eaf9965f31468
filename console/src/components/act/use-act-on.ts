import {
  type Answer,
  type AnswerOf,
  callForVersion,
  type MutationId,
  type OperationId,
  type PathOf,
} from '../../api/client.ts'
import { useTell } from '../told.tsx'
import type { Act } from './act.ts'
import { useAct } from './acts.tsx'

/** For rows of a list, which carry no version: looks at the thing as it is now, then starts the act on it. */
export function useActOn() {
  const start = useAct()
  const tell = useTell()
  return <Show extends OperationId, Id extends MutationId, R, Form extends object>(
    show: Show,
    path: PathOf<Show>,
    actOn: (seen: Answer<AnswerOf<Show>>) => Act<Id, R, Form>,
  ): void =>
    void callForVersion(show, { path }).then(
      (seen) => start(actOn(seen)),
      (error: Error) => tell(error.message),
    )
}
