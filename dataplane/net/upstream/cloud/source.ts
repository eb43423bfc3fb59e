import { readFile } from 'node:fs/promises'
import { CredentialError } from './fetch.ts'

export type Env = Readonly<Record<string, string | undefined>>

/** Sources of credentials besides the config. */
export interface CloudContext {
  readonly env: Env
  readonly nowMs: () => number
}

/** The environment and clock of this process. */
export const machine: CloudContext = { env: process.env, nowMs: Date.now }

/** A bearer token for one audience or scope. */
export interface Token {
  readonly token: string
  readonly expiresAtMs: number | undefined
}

/** Value of an environment variable; undefined if it is unset or empty. */
export const setting = (env: Env, name: string): string | undefined => env[name] || undefined

/** Reads a file that the platform mounts. Not cached, because the platform rotates it. */
export async function readCredentialFile(what: string, path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new CredentialError(`${what} cannot be read`)
  })
  return text.trim()
}

export const expiryIn = (seconds: unknown, nowMs: number): number | undefined => {
  const number = Number(seconds)
  return Number.isFinite(number) && number > 0 ? nowMs + number * 1000 : undefined
}
