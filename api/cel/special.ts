/**
 * Base of every class of the engine's values, errors and maps included. What is an object and none of these is data of the
 * host; the check is much cheaper than looking at prototypes.
 */
// oxlint-disable-next-line typescript/no-extraneous-class -- it exists for instanceof
export abstract class Special {}
