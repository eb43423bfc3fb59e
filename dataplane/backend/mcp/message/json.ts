import { defaultJsonLimits, isJsonObject, parseJson as parse, parseJsonInSteps, verbatimNumbers, type JsonLimits } from '#api/json/index.ts'

/**
 * Parses JSON so that `JSON.stringify` writes every number as it was: schemas hold bounds such as 18446744073709551615, and a gateway must
 * not round them. Throws a SyntaxError or a JsonLimitError.
 */
export const parseJson = (text: string): unknown => parse(text, { numbers: verbatimNumbers })

/** As `parseJson`, in steps. */
export const parseInSteps = (text: string, limits: JsonLimits = defaultJsonLimits): Generator<undefined, unknown, undefined> =>
  parseJsonInSteps(text, { limits, numbers: verbatimNumbers })

/** A JSON object with members of any type. */
export type JsonObject = Record<string, unknown>

/** Whether parsed JSON is an object. */
export const isObject = (value: unknown): value is JsonObject => isJsonObject(value)
