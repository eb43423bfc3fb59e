import { unsupported } from '../common/unsupported.ts'
import type { TargetRules } from './types.ts'

/** The registered name of an image type. */
export function imageType(type: string): string {
  const lower = type.toLowerCase()
  return lower === 'image/jpg' ? 'image/jpeg' : lower
}

/** Throws a FormatError for an image of a type that the target does not read. `at` is the place in the client's body. */
export function checkImage(type: string, at: string, { images }: TargetRules['media']): void {
  if (!images.includes(type)) throw unsupported(at, `an image must be ${images.map((one) => one.replace('image/', '')).join(', ')}, not ${type}; convert it`)
}

const DATA_URL = /^data:(image\/[^;,]+)/i

/** A data URL with the registered name of its image type; other URLs stay. */
export function fitImageUrl(url: string): string {
  const type = DATA_URL.exec(url.slice(0, 64))?.[1]
  if (type === undefined) return url
  const fitted = imageType(type)
  return fitted === type ? url : `data:${fitted}${url.slice('data:'.length + type.length)}`
}
