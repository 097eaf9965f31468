import {
  type Answer,
  type AnswerOf,
  callForVersion,
  type OperationId,
  type PathOf,
} from '../../api/client.ts'
import { useToast } from '../../components/toast.tsx'
import type { Act } from './act.ts'
import type { MutationId } from './mutation.ts'
import { useAct } from './use-act.tsx'

/** List rows have no version, so this loads the current resource and then starts the act on it. */
export function useActOn() {
  const start = useAct()
  const toast = useToast()
  return <Show extends OperationId, Id extends MutationId, R, Form extends object>(
    show: Show,
    path: PathOf<Show>,
    actOn: (loaded: Answer<AnswerOf<Show>>) => Act<Id, R, Form>,
  ): void =>
    void callForVersion(show, { path }).then(
      (loaded) => start(actOn(loaded)),
      (error: Error) => toast(error.message),
    )
}
