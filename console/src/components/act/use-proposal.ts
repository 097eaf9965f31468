import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Refusal } from '../../api/answer.ts'
import { type Answer, type AnswerOf, type BodyOf, call, type MutationId, preview } from '../../api/client.ts'
import { operations } from '../../api/operations.gen.ts'
import { askAnew } from '../../api/queries.ts'
import type { Act } from './act.ts'

/** Long enough for a word to be typed, short enough to be read as an answer to it. */
const restMs = 250

/** What is proposed in a dialog: the fields as edited, what the server says would follow, and the act itself. */
export function useProposal<Id extends MutationId, R, Form extends object>(
  act: Act<Id, R, Form>,
  finish: (data: AnswerOf<Id>) => void,
  mind: (isActing: boolean) => void,
) {
  const [base, setBase] = useState(act.base.seen)
  const [edits, setEdits] = useState<Partial<Form>>({})
  const [reason, setReason] = useState('')
  const [conflict, setConflict] = useState<Answer<R>>()
  // One for the life of the dialog: whoever presses again, after an answer that never came or with a word changed, does
  // not do it twice. The server keeps successes alone, so what was refused may be mended and sent again.
  const [key] = useState(newKey)

  const seen = base.data
  // What was not touched follows what is seen, also after somebody else has changed it.
  const form: Form = { ...act.form(seen), ...edits }
  const body = act.body(form, seen)
  const [restingBody] = useDebouncedValue(JSON.stringify(body), restMs)
  const isResting = restingBody === JSON.stringify(body)
  const { operation, path } = act
  const { version } = base

  const meetConflict = async (error: unknown): Promise<never> => {
    if (error instanceof Refusal && error.status === 412 && act.base.look) setConflict(await act.base.look())
    throw error
  }
  const previewed = useQuery({
    queryKey: ['preview', operation, path, restingBody, version],
    queryFn: ({ signal }) =>
      preview(operation, { path, body: JSON.parse(restingBody ?? '') as BodyOf<Id>, version, signal }).catch(
        meetConflict,
      ),
    enabled: restingBody !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 0,
    gcTime: 0,
  })
  const acting = useMutation({
    // An answer may hold a secret, which is not to outlive the dialog.
    gcTime: 0,
    mutationFn: () =>
      call(operation, {
        path,
        version,
        body: { ...body, ...(reason.trim() && { reason: reason.trim() }) } as BodyOf<Id>,
        ...(operations[operation][0] === 'POST' && { idempotencyKey: key }),
      }).catch(meetConflict),
    onMutate: () => mind(true),
    onSettled: () => mind(false),
    onSuccess: (data) => {
      void askAnew()
      finish(data as AnswerOf<Id>)
    },
  })

  const isComplete = body !== undefined
  const isNothing = previewed.data?.changes.length === 0 && previewed.data.effects.length === 0
  const isPreviewed = isComplete && isResting && previewed.isSuccess && !previewed.isPlaceholderData
  const lacksReason = previewed.data?.reason_required === true && reason.trim() === ''
  return {
    form,
    seen,
    set: (part: Partial<Form>) => setEdits({ ...edits, ...part }),
    reason,
    setReason,
    preview: previewed,
    isComplete,
    /** Why the button does nothing yet. */
    missing: !isPreviewed
      ? undefined
      : isNothing
        ? 'Nothing would change.'
        : lacksReason
          ? 'A reason is needed.'
          : undefined,
    mayAct: isPreviewed && !isNothing && !lacksReason && !acting.isPending,
    isActing: acting.isPending,
    act: () => acting.mutate(),
    failure: conflict ? undefined : acting.error,
    conflict,
    goOn: () => {
      if (conflict) setBase(conflict)
      setConflict(undefined)
      acting.reset()
    },
  }
}

/** `crypto.randomUUID` is only there where the page came by HTTPS. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}
