import type { Base } from '../../../act/base.ts'
import { type Answer, callForVersion } from '../../../api/client.ts'
import type { Policy } from '../../../api/operations.gen.ts'
import { type Act, nothingToFillIn } from '../../act/act.ts'
import { backtestTimeoutMs } from './policies.ts'
import { type Mode, modes } from './sentences.ts'

export const baseOf = (loaded: Answer<Policy>): Base<Policy> => ({
  loaded,
  refetch: () => callForVersion('policies.show', { path: { id: loaded.data.id } }),
})

/** Labels of the buttons that change the mode. */
const buttons: Record<Mode, string> = { off: 'Turn off', shadow: 'Set to shadow', enforce: 'Enforce' }

/** Setting the same mode again resets the breaker. */
export const buttonOf = (mode: Mode, { mode: current }: Policy): string =>
  mode === current ? `Keep in ${modes[mode].label.toLowerCase()}` : buttons[mode]

export const setMode = (
  loaded: Answer<Policy>,
  mode: Mode,
): Act<'policies.edit', Policy, Record<string, never>> => ({
  operation: 'policies.edit',
  path: { id: loaded.data.id },
  title: `${buttonOf(mode, loaded.data)}: ${loaded.data.name}`,
  button: buttonOf(mode, loaded.data),
  success: `Mode set to ${modes[mode].label.toLowerCase()}`,
  isDangerous: mode === 'enforce',
  previewTimeoutMs: backtestTimeoutMs,
  base: baseOf(loaded),
  form: () => ({}),
  body: () => ({ mode }),
})

export const deletePolicy = (
  loaded: Answer<Policy>,
  done: () => void,
): Act<'policies.delete', Policy, object> => ({
  operation: 'policies.delete',
  path: { id: loaded.data.id },
  title: `Delete the policy ${loaded.data.name}`,
  button: 'Delete policy',
  success: 'Policy deleted',
  isDangerous: true,
  base: baseOf(loaded),
  ...nothingToFillIn,
  done,
})
