import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { resolve } from '../../act/base.ts'
import { newIdempotencyKey } from '../../act/idempotency-key.ts'
import { ApiError } from '../../api/api-error.ts'
import { type Answer, type AnswerOf, type BodyOf, call } from '../../api/client.ts'
import type { Preview } from '../../api/operations.gen.ts'
import { refetchAll } from '../../api/queries.ts'
import { operations } from '../operations.gen.ts'
import type { Act } from './act.ts'
import { type MutationId, preview } from './mutation.ts'

/** Long enough to type a word, short enough to feel immediate. */
const debounceMs = 250

/** The state of an act dialog: the edited fields, the server's preview, and the mutation itself. */
export function useProposal<Id extends MutationId, R, Form extends object>(
  act: Act<Id, R, Form>,
  finish: (data: AnswerOf<Id>) => void,
  onActing: (isActing: boolean) => void,
) {
  const [base, setBase] = useState(act.base.loaded)
  const [edits, setEdits] = useState<Partial<Form>>({})
  const [reason, setReason] = useState('')
  const [newest, setNewest] = useState<Answer<R>>()
  const [key] = useState(newIdempotencyKey)

  const loaded = base.data
  // Fields that were not edited follow the loaded resource, even after a conflict.
  const form: Form = { ...act.form(loaded), ...edits }
  const body = act.body(form, loaded)
  const bodyText = JSON.stringify(body)
  const [debouncedBody] = useDebouncedValue(bodyText, debounceMs)
  const [requestedBody, setRequestedBody] = useState<string>()
  const previewedBody = act.isPreviewedOnRequest ? requestedBody : debouncedBody
  const isCurrent = previewedBody === bodyText
  const operation = resolve(act.operation, form, loaded)
  const { path } = act
  const { version } = base
  // A rejected preview can be reported after the user has continued with the version that it conflicted with.
  const conflict = newest?.version === version ? undefined : newest

  const handleConflict = async (error: unknown): Promise<never> => {
    if (error instanceof ApiError && error.status === 412 && act.base.refetch)
      setNewest(await act.base.refetch())
    throw error
  }
  const previewed = useQuery({
    queryKey: ['preview', operation, path, previewedBody, version],
    queryFn: ({ signal }) =>
      preview(operation, {
        path,
        body: JSON.parse(previewedBody ?? '') as BodyOf<Id>,
        version,
        signal,
        ...(act.previewTimeoutMs && { timeoutMs: act.previewTimeoutMs }),
      }).catch(handleConflict),
    enabled: previewedBody !== undefined,
    refetchOnWindowFocus: !act.isPreviewedOnRequest,
    placeholderData: keepPreviousData,
    staleTime: 0,
    gcTime: 0,
  })
  const acting = useMutation({
    // The response may contain a secret, and the secret must not outlive the dialog.
    gcTime: 0,
    mutationFn: () =>
      call(operation, {
        path,
        version,
        body: { ...body, ...(reason.trim() && { reason: reason.trim() }) } as BodyOf<Id>,
        ...(operations[operation]?.[0] === 'POST' && { idempotencyKey: key }),
      }).catch(handleConflict),
    onMutate: () => onActing(true),
    onSettled: () => onActing(false),
    onSuccess: (data) => {
      void refetchAll()
      finish(data as AnswerOf<Id>)
    },
  })

  const isComplete = body !== undefined
  const isUnchanged = previewed.data !== undefined && changesNothing(previewed.data)
  const isPreviewed = isComplete && isCurrent && previewed.isSuccess && !previewed.isPlaceholderData
  const isReasonRequired =
    previewed.data?.reason_required === true || (act.isReasonRequired?.(form, loaded) ?? false)
  const lacksReason = isReasonRequired && reason.trim() === ''
  return {
    operation,
    form,
    loaded,
    set: (part: Partial<Form>) => setEdits({ ...edits, ...part }),
    /** The fields of the request body. */
    fields: Object.keys(body ?? {}),
    reason,
    setReason,
    preview: previewed,
    /** Whether the preview is of the form as it is now. */
    isPreviewed,
    requestPreview: () => {
      if (isCurrent) void previewed.refetch()
      else setRequestedBody(bodyText)
    },
    isComplete,
    isReasonRequired,
    /** Why the submit button is disabled. */
    missing: !isPreviewed
      ? undefined
      : isUnchanged
        ? 'No changes.'
        : lacksReason
          ? 'Enter a reason.'
          : undefined,
    mayAct: isPreviewed && !isUnchanged && !lacksReason && !acting.isPending,
    isActing: acting.isPending,
    act: () => acting.mutate(),
    failure: conflict ? undefined : acting.error,
    conflict,
    resume: () => {
      if (conflict) setBase(conflict)
      acting.reset()
    },
  }
}

const changesNothing = ({ changes, effects, bulk }: Preview): boolean =>
  bulk ? bulk.is_complete && bulk.changed === 0 : changes.length === 0 && effects.length === 0
