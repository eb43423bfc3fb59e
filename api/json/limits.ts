/** Limits of the JSON that clients and upstreams send (traffic.md §9.1): small input must not be expensive to process. */
export interface JsonLimits {
  /** Levels of nested arrays and objects. */
  readonly maxDepth: number
  /** Members of all objects and elements of all arrays, in total. */
  readonly maxMembers: number
}

/** Defaults of `frontend.http.maxJsonDepth` and `frontend.http.maxJsonMembers`. */
export const defaultJsonLimits: JsonLimits = { maxDepth: 512, maxMembers: 100_000 }

/** Characters of one number. Longer ones are of no use, and slow to convert. */
export const MAX_NUMBER_LENGTH = 65_536

/** JSON beyond a limit. The message states the limit, its value and the setting, such as `it nests deeper than 512 levels (frontend.http.maxJsonDepth)`. */
export class JsonLimitError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JsonLimitError'
  }
}

export const tooDeep = ({ maxDepth }: JsonLimits): JsonLimitError => new JsonLimitError(`it nests deeper than ${maxDepth} levels (frontend.http.maxJsonDepth)`)

export const tooManyMembers = ({ maxMembers }: JsonLimits): JsonLimitError =>
  new JsonLimitError(`it has more than ${maxMembers} members and elements (frontend.http.maxJsonMembers)`)

export const numberTooLong = (): JsonLimitError => new JsonLimitError(`it has a number of more than ${MAX_NUMBER_LENGTH} characters`)

export function duplicateName(): SyntaxError {
  return new SyntaxError('an object of JSON repeats a name')
}
