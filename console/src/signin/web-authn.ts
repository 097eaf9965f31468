import type { BodyOf } from '../api/client.ts'

type Options = Record<string, unknown>

/** The browser converts the options and results to JSON itself (WebAuthn level 3). */
export const arePasskeysSupported = (): boolean =>
  typeof PublicKeyCredential !== 'undefined' && 'parseCreationOptionsFromJSON' in PublicKeyCredential

export async function createPasskey(options: Options) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as unknown as PublicKeyCredentialCreationOptionsJSON,
  )
  const made = await ask(() => navigator.credentials.create({ publicKey }))
  return made.toJSON() as unknown as BodyOf<'auth.add-passkey'>['credential']
}

export async function getPasskey(options: Options) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
    options as unknown as PublicKeyCredentialRequestOptionsJSON,
  )
  const given = await ask(() => navigator.credentials.get({ publicKey }))
  return given.toJSON() as unknown as BodyOf<'auth.sign-in-with-passkey'>['credential']
}

async function ask(prompt: () => Promise<Credential | null>): Promise<PublicKeyCredential> {
  try {
    const credential = await prompt()
    if (credential) return credential as PublicKeyCredential
  } catch (error) {
    const name = error instanceof DOMException ? error.name : ''
    if (name === 'InvalidStateError') throw new Error('This device already has a passkey for your account.')
    if (name !== 'NotAllowedError' && name !== 'AbortError') throw error
  }
  throw new Error('The browser returned no passkey. Try again, or use another method.')
}
