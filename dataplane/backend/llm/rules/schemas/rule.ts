export interface SchemaRule {
  /** A tool without schema is rejected. */
  readonly isNeeded: boolean
  /** The root has a member `type` with the value `object`. */
  readonly needsObject: boolean
  /** An object without `properties` is rejected. */
  readonly needsProperties: boolean
  /** An array without `items` is rejected. */
  readonly needsItems: boolean
  /** A schema that is not valid in draft 2020-12 is rejected. */
  readonly isChecked: boolean
  /** `oneOf`, `anyOf` and `allOf` at the root; without, their properties become those of the root. */
  readonly hasRootUnions: boolean
  /** JSON Schema, or Google's subset of OpenAPI schemas. */
  readonly dialect: 'json' | 'google'
  /** Members that are removed at the root. */
  readonly rootDrops: readonly string[]
  /** `strict` of tools, and of output formats in formats that have it. */
  readonly hasStrict: boolean
  /** Formats of responses: schemas, JSON without a schema only, or none. */
  readonly output: 'schema' | 'object' | 'none'
  /** Schemas of responses and of strict tools: objects are closed, and limits of values are unknown. JSON without a schema cannot be asked for. */
  readonly isClosed: boolean
}
