import type { JsonObject } from '../../common/types.ts'

const snakes = new Map<string, string>()

/** A member by its name in camel case. Gemini's servers accept the name in snake case too, as older documents and clients write it. */
export function member(object: JsonObject, name: string): unknown {
  const value = object[name]
  if (value !== undefined) return value
  let snake = snakes.get(name)
  if (snake === undefined) snakes.set(name, (snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)))
  return snake === name ? undefined : object[snake]
}

const SIGNATURE = 'signature:'

/** The signature of another provider's thinking as `thoughtSignature`, which is base64: SDKs decode it, and encode it again for URLs. */
export const wrapSignature = (signature: string): string => Buffer.from(`${SIGNATURE}${signature}`).toString('base64')

/** The signature that the gateway has wrapped; undefined for those of Gemini. */
export function unwrapSignature(signature: string): string | undefined {
  const text = Buffer.from(signature, 'base64').toString()
  return text.startsWith(SIGNATURE) ? text.slice(SIGNATURE.length) : undefined
}
