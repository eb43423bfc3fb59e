import { BackgroundWorker, type BackgroundOptions } from '../../request/exchange/background-worker.ts'
import type { PasswordRequest } from './password-worker.ts'

/** Whether a password matches a hash. The check is dropped if its signal is aborted before it starts. */
export type CheckPassword = (password: string, hash: string, options?: BackgroundOptions) => Promise<boolean>

const thread = new BackgroundWorker<PasswordRequest, boolean>(
  new URL(import.meta.url.endsWith('.ts') ? './password-worker.ts' : './password-worker.js', import.meta.url),
  'passwords to check',
)

/** Checks in a worker thread, because bcrypt takes tens of milliseconds. */
export const checkInThread: CheckPassword = (password, hash, options) => thread.run({ password, hash }, options)
