"""What stands together in the reference: each page has the others of its group in "See Also"."""

GROUPS = (
    ("PATS", "JPATS", "PatternMixture", "AlignedViewsClassifier", "Pattern", "project", "load"),
    ("AlignedViews", "AlignedViewsClassifier", "JPATS"),
    ("project", "Projection", "Effort", "align", "warp", "matrices"),
    ("open_stack", "stream", "files.read_images", "files.Preparation", "files.ImageSet"),
    ("files.Placement", "files.Source", "files.read_originals", "files.read_images"),
    ("Translation", "Scaling", "RotationTranslation", "Similarity", "Affine"),
    ("RotationTranslationScaling", "Similarity", "Affine", "Shear"),
    ("Shear", "Bend", "Projective", "Elastic", "StrokeWidth", "CustomTransformation"),
    ("Gaussian", "InverseMultiquadric", "CustomMother", "mothers.AbstractRadialMother"),
    ("AtomDictionary", "CustomDictionary", "dictionaries.AbstractDictionary"),
    ("Squared", "Huber", "StudentT", "Prior", "losses.AbstractLoss"),
    ("Box", "Grid"),
    ("transformations.AbstractTransformation", "transformations.AbstractAffineTransformation"),
    ("mothers.AbstractMother", "mothers.AbstractRadialMother"),
    (
        "transformations.as_transformation",
        "mothers.as_mother",
        "dictionaries.as_dictionary",
        "losses.as_loss",
        "solvers.as_solver",
    ),
    ("solvers.AbstractSolver", "solvers.Search", "solvers.CuttingPlane", "solvers.Points"),
    ("solvers.CuttingPlane", "solvers.BranchAndBound", "solvers.Dca"),
    ("symmetry.symmetry_of", "symmetry.Symmetry", "symmetry.equivalent_poses", "symmetry.fold"),
    ("manifold.render", "manifold.field", "manifold.tangents", "manifold.tangent_distance"),
    ("dc.Function", "dc.Restricted", "dc.frozen_error", "dc.Atom", "dc.DC"),
    ("dc.Decomposition", "dc.ByRules", "dc.ByCurvature", "dc.ByParts", "dc.Polytope"),
    ("dc.hessian_bound", "dc.by_curvature"),
    ("dc.cutting_plane", "dc.branch_and_bound", "dc.dca", "dc.dca_by_regions", "dc.Result"),
    ("dc.minimise_blocks", "dc.coarse_grid", "dc.narrow", "dc.cutting_plane"),
    ("dc.particle_swarm", "dc.differential_evolution", "dc.coarse_grid"),
    (
        "baselines.MatchingPursuit",
        "baselines.SimultaneousMatchingPursuit",
        "baselines.SimultaneousMatchingPursuitClassifier",
        "baselines.SupervisedAtomSelection",
        "baselines.with_first_atoms",
    ),
    ("baselines.sampled_dictionary", "baselines.SampledDictionary", "baselines.MatchingPursuit"),
    (
        "baselines.LocallyLinearApproximation",
        "baselines.LocallyLinearClassifier",
        "baselines.SupervisedLLE",
        "baselines.SupervisedLLEClassifier",
    ),
    ("baselines.discriminant_analyses", "baselines.neural_network"),
    (
        "plotting.PatternDisplay",
        "plotting.ErrorPathDisplay",
        "plotting.AlignmentDisplay",
        "plotting.ContactSheetDisplay",
        "plotting.ManifoldDisplay",
    ),
    ("report.explorer", "report.report", "report.save_explorer", "report.Page"),
    (
        "export.export_pattern",
        "export.pattern_to_svg",
        "export.pattern_to_png",
        "export.pattern_to_csv",
    ),
    ("persistence.read_model_file", "persistence.ModelFileError", "load"),
    (
        "datasets.load_mnist",
        "datasets.load_frey_faces",
        "datasets.load_yale_faces",
        "datasets.load_plankton",
    ),
    ("datasets.transform_images", "datasets.random_images", "datasets.random_pattern"),
    ("datasets.make_brightfield", "datasets.Brightfield"),
    ("datasets.split_digits", "datasets.split_plankton", "datasets.Split"),
    ("experiments.Experiment", "experiments.Outcome", "experiments.Claim", "experiments.Picture"),
    (
        "experiments.context.Context",
        "experiments.results.run_experiment",
        "experiments.ledger.write_ledger",
    ),
    (
        "testing.check_transformation",
        "testing.check_mother",
        "testing.check_dictionary",
        "testing.check_dc",
        "testing.check_pattern_operator",
    ),
)


def related(name: str) -> list[str]:
    """Full names of what stands with a public name, given in full or without the package."""
    own = name.removeprefix("patternfold.")
    found = [other for group in GROUPS if own in group for other in group if other != own]
    return [f"patternfold.{other}" for other in dict.fromkeys(found)]


def add_related(app, what, name, obj, options, lines):
    """Add a "See Also" section to a docstring that has none, before numpydoc reads it."""
    others = related(name)
    if others and not any(line.strip() == "See Also" for line in lines):
        places = [
            i for i, line in enumerate(lines) if line.strip() in ("Notes", "References", "Examples")
        ]
        at = places[0] if places else len(lines)
        lines[at:at] = ["", "See Also", "--------", *others, ""]
